"""For each error, the smallest program that raises it, and what to write instead.

A function is named by the class, and its body is the program: text that is shown and run, line by
line as it stands here. What follows the comment `# Instead:` is the program that works. A body that
begins with `# On` or `# In` is only shown, and `# Message:` then has the error as an example.
"""
