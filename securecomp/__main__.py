"""`python -m securecomp`."""

from securecomp.cli.main import main

if __name__ == "__main__":
    main(prog_name="securecomp")
