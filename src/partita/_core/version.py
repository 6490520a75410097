"""The version of this package, where every layer may ask for it."""

__version__ = "0.2.0"
