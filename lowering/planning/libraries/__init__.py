"""Rules that plan calls of libraries, and which of these run side by side; others are in the folder
above.
"""
