"""The version of this distribution, which both of its packages carry."""

__version__ = "0.1.0"
