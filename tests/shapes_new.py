# ruff: noqa
"""As ``shapes.py``, in the syntax that came with Python 3.12."""

SHAPES = []


def shape(fun):
    SHAPES.append(fun)
    return fun


@shape
def type_parameters(a, b):
    def first[T](xs: list[T], default: T = None) -> T:
        return xs[0] if xs else default

    type Number = int | float
    return first([a, b]), first([]), Number.__name__


@shape
def generic[T](a: T, b: T) -> T:
    return a + b


@shape
def generic_class(a, b):
    class Stack[T]:
        def push(self, x: T) -> T:
            return x

    return Stack().push(a)


@shape
def quotes(a, b):
    d = {"x": 1}
    return f"{d["x"]} {f"{f"{a}"}"} {
        b  # a comment
    }"
