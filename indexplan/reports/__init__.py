"""Reports on a plan, which print for people: what it holds, promises, costs and changes."""
