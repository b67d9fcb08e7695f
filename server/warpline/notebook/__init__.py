"""``%%warpline``: a notebook's cell, profiled, with the table below it."""
