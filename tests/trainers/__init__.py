"""Plans under real trainers: real packages, real processes."""
