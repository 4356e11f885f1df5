//! Finds the rank of a process, its number among the processes of a distributed program, in the variables that
//! launchers such as `torchrun` and `mpirun` set.

use serde::{Deserialize, Serialize};

/// The position of a process among the processes of a distributed program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rank {
    /// The number of the process, from 0.
    pub rank: u32,
    /// The number of processes on all machines: at least 2.
    pub world_size: u32,
    /// The number of the process on its machine, where it is known.
    pub local_rank: Option<u32>,
}

/// The names of the variables in which a launcher passes the rank, the number of ranks, and the rank on the machine.
/// Of several names the first that is set to a number counts.
struct LauncherVariables {
    rank: &'static str,
    world_size: &'static [&'static str],
    local_rank: &'static [&'static str],
}

/// The variables of known launchers. The first with a plausible rank and size wins: a program's own launcher comes
/// before the one that started that launcher.
const LAUNCHERS: [LauncherVariables; 8] = [
    // torchrun, DeepSpeed, Accelerate, Lightning.
    LauncherVariables {
        rank: "RANK",
        world_size: &["WORLD_SIZE"],
        local_rank: &["LOCAL_RANK"],
    },
    // Horovod, under any of its launchers.
    LauncherVariables {
        rank: "HOROVOD_RANK",
        world_size: &["HOROVOD_SIZE"],
        local_rank: &["HOROVOD_LOCAL_RANK"],
    },
    // A convention of programs that pass the values to `jax.distributed.initialize`.
    LauncherVariables {
        rank: "JAX_PROCESS_ID",
        world_size: &["JAX_NUM_PROCESSES", "JAX_PROCESS_COUNT"],
        local_rank: &["JAX_LOCAL_PROCESS_ID"],
    },
    LauncherVariables {
        rank: "OMPI_COMM_WORLD_RANK",
        world_size: &["OMPI_COMM_WORLD_SIZE"],
        local_rank: &["OMPI_COMM_WORLD_LOCAL_RANK"],
    },
    // MVAPICH.
    LauncherVariables {
        rank: "MV2_COMM_WORLD_RANK",
        world_size: &["MV2_COMM_WORLD_SIZE"],
        local_rank: &["MV2_COMM_WORLD_LOCAL_RANK"],
    },
    // MPICH and Intel MPI with Hydra, Cray's with PALS.
    LauncherVariables {
        rank: "PMI_RANK",
        world_size: &["PMI_SIZE"],
        local_rank: &["MPI_LOCALRANKID", "PMI_LOCAL_RANK", "PALS_LOCAL_RANKID"],
    },
    LauncherVariables {
        rank: "PALS_RANKID",
        world_size: &["PMI_SIZE"],
        local_rank: &["PALS_LOCAL_RANKID"],
    },
    LauncherVariables {
        rank: "SLURM_PROCID",
        // The step comes first, because an allocation may be larger.
        world_size: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
        local_rank: &["SLURM_LOCALID"],
    },
];

impl Rank {
    /// Returns the rank that an environment gives; `None` where no launcher gives one, and in a program of one
    /// process. `variable` returns a variable's value by its name.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Rank> {
        let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
        let first = |names: &[&str]| names.iter().find_map(|name| number(name));
        LAUNCHERS.iter().find_map(|names| {
            let (rank, world_size) = (number(names.rank)?, first(names.world_size)?);
            (world_size > 1 && rank < world_size).then(|| Rank {
                rank,
                world_size,
                local_rank: first(names.local_rank),
            })
        })
    }

    /// Returns the rank in the environment of this process.
    pub fn from_environment() -> Option<Rank> {
        Rank::from_variables(|name| std::env::var(name).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank_of(pairs: &[(&str, &str)]) -> Option<Rank> {
        Rank::from_variables(|name| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_rank_needs_its_number_and_company() {
        let rank = rank_of(&[("RANK", "1"), ("WORLD_SIZE", "4"), ("LOCAL_RANK", "0")]).unwrap();
        assert_eq!(
            (rank.rank, rank.world_size, rank.local_rank),
            (1, 4, Some(0))
        );
        assert_eq!(rank_of(&[("RANK", "0"), ("WORLD_SIZE", "1")]), None);
        assert_eq!(rank_of(&[("RANK", "4"), ("WORLD_SIZE", "4")]), None);
        assert_eq!(rank_of(&[("RANK", "x"), ("WORLD_SIZE", "4")]), None);
        assert_eq!(rank_of(&[]), None);
        let mpi = [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")];
        assert_eq!(
            rank_of(&mpi).map(|r| (r.rank, r.local_rank)),
            Some((3, None))
        );
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
            let known = rank_of(&[(rank, "5"), (size, "8"), (local, "1")])
                .map(|r| (r.rank, r.world_size, r.local_rank));
            assert_eq!(known, Some((5, 8, Some(1))), "{rank}");
        }
    }

    #[test]
    fn the_programs_own_launcher_comes_before_what_started_it() {
        // A job of torchrun in one task, and a step of a larger allocation.
        let job = [
            ("SLURM_PROCID", "1"),
            ("SLURM_NTASKS", "16"),
            ("SLURM_STEP_NUM_TASKS", "2"),
        ];
        assert_eq!(rank_of(&job).map(|r| (r.rank, r.world_size)), Some((1, 2)));
        let both = [&[("RANK", "7"), ("WORLD_SIZE", "8")][..], &job].concat();
        assert_eq!(rank_of(&both).map(|r| (r.rank, r.world_size)), Some((7, 8)));
    }
}
