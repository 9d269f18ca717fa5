"""Other people's packages, one a file, and the differences that are known; a file is listed because it is there."""
