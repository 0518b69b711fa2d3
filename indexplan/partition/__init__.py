"""The partition: (epoch, sub_epoch, step, rank) -> [start, stop), and back, by arithmetic."""
