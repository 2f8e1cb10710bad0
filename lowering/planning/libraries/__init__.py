"""Rules that plan calls of libraries; others are in the folder above."""
