import { InvalidArgumentError } from "commander";

/** Reads the number of entries that a list shows. Throws an error of Commander for anything else. */
export function parseCount(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError("Expected a whole number from 1 on.");
  return Number(text);
}
