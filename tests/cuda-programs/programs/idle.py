"""A context of CUDA that has run one kernel and then does nothing. Argument: for how many seconds."""

import sys
import time

from driver import Driver

if __name__ == "__main__":
    driver = Driver()
    driver.launch("nothing")
    driver.synchronise()
    time.sleep(float(sys.argv[1]))
