"""What provokes the errors of errors.txt.

Each section of errors.txt has the names of its module here, and those of `made`.
"""
