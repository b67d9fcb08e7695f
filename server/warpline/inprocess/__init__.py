"""``with warpline.profile():``: a block of the user's own process is profiled as it runs."""
