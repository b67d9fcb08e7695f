LOADER = {"batch_size": 20, "num_workers": 4, "persistent_workers": False}  #> found


def data(): ...
