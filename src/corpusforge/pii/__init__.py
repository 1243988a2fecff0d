"""Personal data and secrets: recognisers, context rules, stand-ins, keys."""
