mod chains;
mod made;
mod random;
mod refused;
