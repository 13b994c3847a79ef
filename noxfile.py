"""What CI runs, for developers: ``nox`` runs the tests on this Python, the linters and the wheel; ``nox -l`` lists all."""

import nox

nox.options.sessions = ["lint", "types", "tests-3.11(numpy='newest')", "wheel"]
nox.options.reuse_existing_virtualenvs = True

OLDEST = {"3.11": "2.0.0", "3.12": "2.0.0", "3.13": "2.1.0"}  # NumPy that has wheels for that Python


@nox.session(python=list(OLDEST))
@nox.parametrize("numpy", ["oldest", "newest"])
def tests(session: nox.Session, numpy: str) -> None:
    """The tests, with the oldest and the newest NumPy."""
    pin = f"numpy=={OLDEST[str(session.python)]}" if numpy == "oldest" else "numpy"
    session.install("-e", ".[test]", pin)
    session.run("python", "-m", "pytest", "-n", "auto", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff: rules and format."""
    session.install("ruff>=0.15")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Mypy, strict."""
    session.install("-e", ".[dev]")
    session.run("mypy")


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the wheel; install it without extras, and use it."""
    session.install("build")
    out = session.create_tmp()
    session.run("python", "-m", "build", "--outdir", out)
    session.run(
        "python", "-m", "pip", "install", "-q", "--force-reinstall", "--no-index", "--find-links", out, "--no-deps", "symgrad"
    )
    session.install("numpy", "astor")
    session.run("python", "-W", "error", "-c", "import symgrad; assert symgrad.grad(lambda x: x**2)(3.0) == 6.0")
    session.run("python", "-m", "symgrad", "--help", silent=True)
