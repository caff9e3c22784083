"""``calibrate``: what a machine can see, measured on identical sides."""
