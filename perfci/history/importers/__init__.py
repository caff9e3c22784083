"""Result files of other tools as recorded runs. Pure."""
