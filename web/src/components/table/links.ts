/** Where a row leads: to the timeline, to source, to another page. */
export interface RowLink {
  readonly label: string;
  readonly href: string;
}
