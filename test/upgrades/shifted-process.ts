// A process loads this file before its main file (`--import`), to move the process's time by TEST_TIME_SHIFT
// milliseconds.
import { shiftTime } from './shifted-time.ts';

shiftTime(Number(process.env.TEST_TIME_SHIFT));
