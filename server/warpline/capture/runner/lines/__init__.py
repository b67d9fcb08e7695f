"""Line records: which line of the user's files runs when, on each thread."""
