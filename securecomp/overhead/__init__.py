"""What privacy costs against plaintext: measured, modelled and reported."""
