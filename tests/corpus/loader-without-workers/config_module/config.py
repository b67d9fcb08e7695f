SETTINGS = {
    "model": {"width": 512},
    "data": {
        "batch": 128,
        "num_workers": 0,  #> found
    },
}


def dataset():
    import datasets

    return datasets.load("imagenet")
