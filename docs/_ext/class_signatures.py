"""No signature for classes that users receive and do not make: their attributes say it all."""


def hide_signature(_app, what, _name, item, _options, _signature, _returned):
    """Leave out the arguments of a class whose docstring has no section on them."""
    if what == "class" and "Parameters\n" not in (item.__doc__ or ""):
        return "", None
    return None


def setup(app):
    """Make it known to Sphinx."""
    app.connect("autodoc-process-signature", hide_signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
