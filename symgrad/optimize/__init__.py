"""Graph to better graph. Every rewrite leaves results equal up to rounding, and can be switched off."""
