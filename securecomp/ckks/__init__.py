"""CKKS: a server scores encrypted rows with its own logistic model, and sees none of them."""
