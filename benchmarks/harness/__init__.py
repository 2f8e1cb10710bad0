"""How rows are run, timed, compared and reported."""
