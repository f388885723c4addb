"""The columnar recall index: everything here is derived from the rows of a store and can be rebuilt."""
