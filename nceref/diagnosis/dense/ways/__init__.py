"""Ways of doing the stages of a loss that programs were seen with, or that lie near: one stage a file."""
