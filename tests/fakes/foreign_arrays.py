"""Arrays of another library as the recording backend sees them, and owners of memory."""


class Foreign:
    """Elements at an address."""

    def __init__(self, pointer, strides=None, typestr="<f8", shape=(1000,)):
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": typestr,
            "data": (pointer, False),
            "strides": strides,
        }


class Owner:
    """Frees its memory when it is collected."""

    def __init__(self, memory):
        self.memory = memory


class View:
    """Part of a device array, as another library would present it."""

    def __init__(self, owner, start, shape, strides=None):
        described = owner.__cuda_array_interface__
        self.owner = owner
        self.__cuda_array_interface__ = {
            **described,
            "shape": shape,
            "strides": strides,
            "data": (described["data"][0] + start * owner.dtype.itemsize, False),
        }
