/** Returns the names of an object's own members, with their type. */
export function memberNames<T extends object>(members: T): (keyof T & string)[] {
  return Object.keys(members).filter((name): name is keyof T & string => Object.hasOwn(members, name));
}
