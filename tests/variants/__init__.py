"""Each law of the project, and a wrong variant of the code with which its tests must fail."""
