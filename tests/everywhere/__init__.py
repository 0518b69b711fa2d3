"""shuffle-v1 in other languages than Python, held to the package to the bit."""
