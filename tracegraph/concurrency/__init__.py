"""What several threads share. It imports nothing of the package.

Both are used by tracegraph and by lowering.

locks      locks that are taken together, and work that waits for one
weak_set   a weak set for several threads
"""
