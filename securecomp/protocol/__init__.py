"""The foundation of every protocol: messages, identities, sessions, roles, carriers and storage."""
