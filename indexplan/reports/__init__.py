"""Answers that print: what a plan promises, holds, costs and changes."""
