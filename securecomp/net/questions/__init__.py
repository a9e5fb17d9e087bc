"""Questions of analysts: judged by the study's rules or by a person, answered, and logged."""
