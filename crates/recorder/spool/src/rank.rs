//! Processes that work on one thing together, as `torchrun` and `mpirun` start them.

use serde::{Deserialize, Serialize};

/// The place of a process among the processes of a distributed program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rank {
    /// Its number, from 0.
    pub rank: u32,
    /// How many there are, on all machines: at least 2.
    pub world_size: u32,
    /// Its number among those of its machine, where that is known.
    pub local_rank: Option<u32>,
}

/// Variables by which launchers tell a process its rank, the number of ranks, and its rank on the machine: PyTorch and
/// what follows it, Open MPI, MPICH and its kin, Slurm. The first that makes sense counts.
const VARIABLES: [[&str; 3]; 4] = [
    ["RANK", "WORLD_SIZE", "LOCAL_RANK"],
    [
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
    ],
    ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"],
    ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"],
];

impl Rank {
    /// The rank that an environment says; `None` for a process that is alone.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Rank> {
        let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
        VARIABLES.iter().find_map(|[rank, size, local]| {
            let (rank, world_size) = (number(rank)?, number(size)?);
            (world_size > 1 && rank < world_size).then(|| Rank {
                rank,
                world_size,
                local_rank: number(local),
            })
        })
    }

    /// The rank that this process's environment says.
    pub fn of_environment() -> Option<Rank> {
        Rank::of(|name| std::env::var(name).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Option<Rank> {
        Rank::of(|name| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_rank_needs_its_number_and_company() {
        let rank = of(&[("RANK", "1"), ("WORLD_SIZE", "4"), ("LOCAL_RANK", "0")]).unwrap();
        assert_eq!(
            (rank.rank, rank.world_size, rank.local_rank),
            (1, 4, Some(0))
        );
        assert_eq!(of(&[("RANK", "0"), ("WORLD_SIZE", "1")]), None);
        assert_eq!(of(&[("RANK", "4"), ("WORLD_SIZE", "4")]), None);
        assert_eq!(of(&[("RANK", "x"), ("WORLD_SIZE", "4")]), None);
        assert_eq!(of(&[]), None);
        let mpi = [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")];
        assert_eq!(of(&mpi).map(|r| (r.rank, r.local_rank)), Some((3, None)));
    }
}
