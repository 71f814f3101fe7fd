// Loaded by a process before its main file (`--import`): moves its time by TEST_TIME_SHIFT milliseconds.
import { shiftTime } from './shifted-time.ts';

shiftTime(Number(process.env.TEST_TIME_SHIFT));
