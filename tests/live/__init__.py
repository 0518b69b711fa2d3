"""Worlds that change while a run goes on: simulated quorums, and processes that are killed."""
