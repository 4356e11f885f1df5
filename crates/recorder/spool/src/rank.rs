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

/// Variables by which a launcher tells a process its rank, the number of ranks, and its rank on the machine.
struct Variables {
    rank: &'static str,
    world_size: &'static [&'static str],
    local_rank: &'static [&'static str],
}

/// What launchers set. The first whose rank and number of ranks make sense counts: what a program's own launcher sets comes before what started that.
const VARIABLES: [Variables; 8] = [
    // torchrun, DeepSpeed, Accelerate, Lightning.
    Variables {
        rank: "RANK",
        world_size: &["WORLD_SIZE"],
        local_rank: &["LOCAL_RANK"],
    },
    // Horovod, under any of its launchers.
    Variables {
        rank: "HOROVOD_RANK",
        world_size: &["HOROVOD_SIZE"],
        local_rank: &["HOROVOD_LOCAL_RANK"],
    },
    // By convention, for programs that hand them to `jax.distributed.initialize`.
    Variables {
        rank: "JAX_PROCESS_ID",
        world_size: &["JAX_NUM_PROCESSES", "JAX_PROCESS_COUNT"],
        local_rank: &["JAX_LOCAL_PROCESS_ID"],
    },
    Variables {
        rank: "OMPI_COMM_WORLD_RANK",
        world_size: &["OMPI_COMM_WORLD_SIZE"],
        local_rank: &["OMPI_COMM_WORLD_LOCAL_RANK"],
    },
    // MVAPICH.
    Variables {
        rank: "MV2_COMM_WORLD_RANK",
        world_size: &["MV2_COMM_WORLD_SIZE"],
        local_rank: &["MV2_COMM_WORLD_LOCAL_RANK"],
    },
    // MPICH and Intel MPI by Hydra, Cray's by PALS.
    Variables {
        rank: "PMI_RANK",
        world_size: &["PMI_SIZE"],
        local_rank: &["MPI_LOCALRANKID", "PMI_LOCAL_RANK", "PALS_LOCAL_RANKID"],
    },
    Variables {
        rank: "PALS_RANKID",
        world_size: &["PMI_SIZE"],
        local_rank: &["PALS_LOCAL_RANKID"],
    },
    Variables {
        rank: "SLURM_PROCID",
        // Of the step first: an allocation may be larger.
        world_size: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
        local_rank: &["SLURM_LOCALID"],
    },
];

impl Rank {
    /// The rank that an environment says; `None` for a process that is alone.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Rank> {
        let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
        let first = |names: &[&str]| names.iter().find_map(|name| number(name));
        VARIABLES.iter().find_map(|names| {
            let (rank, world_size) = (number(names.rank)?, first(names.world_size)?);
            (world_size > 1 && rank < world_size).then(|| Rank {
                rank,
                world_size,
                local_rank: first(names.local_rank),
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

    #[test]
    fn launchers_are_known_by_their_variables() {
        for (rank, size, local) in [
            ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
            ("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK"),
            (
                "JAX_PROCESS_ID",
                "JAX_NUM_PROCESSES",
                "JAX_LOCAL_PROCESS_ID",
            ),
            (
                "JAX_PROCESS_ID",
                "JAX_PROCESS_COUNT",
                "JAX_LOCAL_PROCESS_ID",
            ),
            (
                "MV2_COMM_WORLD_RANK",
                "MV2_COMM_WORLD_SIZE",
                "MV2_COMM_WORLD_LOCAL_RANK",
            ),
            ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
            ("PMI_RANK", "PMI_SIZE", "PMI_LOCAL_RANK"),
            ("PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID"),
            ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
        ] {
            let known = of(&[(rank, "5"), (size, "8"), (local, "1")])
                .map(|r| (r.rank, r.world_size, r.local_rank));
            assert_eq!(known, Some((5, 8, Some(1))), "{rank}");
        }
    }

    #[test]
    fn the_programs_own_launcher_comes_before_what_started_it() {
        // torchrun in a job of one task, and a step of a larger allocation.
        let job = [
            ("SLURM_PROCID", "1"),
            ("SLURM_NTASKS", "16"),
            ("SLURM_STEP_NUM_TASKS", "2"),
        ];
        assert_eq!(of(&job).map(|r| (r.rank, r.world_size)), Some((1, 2)));
        let both = [&[("RANK", "7"), ("WORLD_SIZE", "8")][..], &job].concat();
        assert_eq!(of(&both).map(|r| (r.rank, r.world_size)), Some((7, 8)));
    }
}
