//! interaction.
