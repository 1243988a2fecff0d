"""The stages, one file each, named as in dvc.yaml. None of them opens a file."""
