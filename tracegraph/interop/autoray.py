"""autoray, and with it quimb and cotengra, for Arrays and traced values.

Importing this module tells autoray where the functions of Arrays are.
"""

from autoray import autoray

autoray._MODULE_ALIASES["tracegraph"] = "tracegraph.array_api"
