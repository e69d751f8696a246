"""The user's code and objects: frames, names, holders."""
