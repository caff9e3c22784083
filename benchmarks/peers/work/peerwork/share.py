"""How much slower this commit is, as a share of each call. The commits differ in this line."""

SHARE = 0.0
