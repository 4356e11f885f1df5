// Finds the greatest number of any range of a column in logarithmic time, by a pyramid of levels: each level keeps
// the greatest of every 64 numbers of the level below.

type Numbers = Uint32Array | Float64Array;

/** How many numbers of one level become one of the next. */
const BLOCK = 64;

/** The index and value of the greatest number in each block of 64 numbers, or of 64 blocks of the level below. */
interface Level {
  at: Uint32Array;
  value: Numbers;
}

/** The pyramid over the first `count` numbers of a column, which must not change afterwards. */
export class Peaks {
  private readonly levels: Level[] = [];

  constructor(
    private readonly numbers: Numbers,
    count = numbers.length,
  ) {
    const Kind = numbers.constructor as new (length: number) => Numbers;
    let below: { at: Uint32Array | null; value: Numbers; length: number } = { at: null, value: numbers, length: count };
    do {
      const blocks = Math.ceil(below.length / BLOCK);
      const level: Level = { at: new Uint32Array(blocks), value: new Kind(blocks) };
      for (let block = 0; block < blocks; block += 1) {
        const end = Math.min((block + 1) * BLOCK, below.length);
        let most = block * BLOCK;
        for (let i = most + 1; i < end; i += 1) if (below.value[i] > below.value[most]) most = i;
        level.at[block] = below.at ? below.at[most] : most;
        level.value[block] = below.value[most];
      }
      this.levels.push(level);
      below = { ...level, length: blocks };
    } while (below.length > BLOCK);
  }

  /** Returns the index of the greatest of the numbers `from..to`, without `to`; -1 where there are none. */
  indexOfMax(from: number, to: number): number {
    if (from >= to) return -1;
    let most = from;
    let greatest = this.numbers[from];
    let low = from;
    let high = to;
    for (let number = -1; low < high; number += 1) {
      const level = number < 0 ? null : this.levels[number];
      const value = level ? level.value : this.numbers;
      const up = number + 1 < this.levels.length;
      // Scan the numbers before the first whole block and after the last, or all of them where there is no whole block.
      const first = up ? Math.min(Math.ceil(low / BLOCK) * BLOCK, high) : high;
      const last = up ? Math.max(Math.floor(high / BLOCK) * BLOCK, first) : high;
      for (let i = low; i < first; i += 1) {
        if (value[i] > greatest) {
          greatest = value[i];
          most = level ? level.at[i] : i;
        }
      }
      for (let i = last; i < high; i += 1) {
        if (value[i] > greatest) {
          greatest = value[i];
          most = level ? level.at[i] : i;
        }
      }
      low = first / BLOCK;
      high = last / BLOCK;
    }
    return most;
  }
}
