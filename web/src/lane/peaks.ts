// The greatest of any stretch of numbers, in logarithmic time.

const BLOCK = 64;

export class Peaks {
  /** Where the greatest of each 64 numbers is, of each 64 of those, and so on. */
  private readonly levels: Uint32Array[] = [];

  constructor(
    private readonly numbers: ArrayLike<number>,
    count = numbers.length,
  ) {
    let below: Uint32Array | null = null;
    let length = count;
    do {
      const level: Uint32Array = new Uint32Array(Math.ceil(length / BLOCK));
      for (let block = 0; block < level.length; block += 1) {
        const end = Math.min((block + 1) * BLOCK, length);
        let most = below ? below[block * BLOCK] : block * BLOCK;
        for (let i = block * BLOCK + 1; i < end; i += 1) {
          const at = below ? below[i] : i;
          if (numbers[at] > numbers[most]) most = at;
        }
        level[block] = most;
      }
      this.levels.push(level);
      below = level;
      length = level.length;
    } while (length > BLOCK);
  }

  /** Where the greatest of the numbers `from..to` is, -1 for none. */
  of(from: number, to: number): number {
    if (from >= to) return -1;
    let most = from;
    let low = from;
    let high = to;
    for (let level = -1; low < high; level += 1) {
      const index = level < 0 ? null : this.levels[level];
      const up = level + 1 < this.levels.length;
      const take = (i: number): void => {
        const at = index ? index[i] : i;
        if (this.numbers[at] > this.numbers[most]) most = at;
      };
      while (low < high && !(up && low % BLOCK === 0 && high - low >= BLOCK)) take(low++);
      while (low < high && high % BLOCK !== 0) take(--high);
      low /= BLOCK;
      high /= BLOCK;
    }
    return most;
  }
}
