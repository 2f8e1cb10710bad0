// Groups of consecutive updates that change one element.

// The first update after `first` and below `count` that changes another element than `place`. Its
// distance is doubled until it is passed, and then halved: most groups are short.
template <class Index, class Place, class PlaceOf>
__device__ Index tg_group_end(const PlaceOf& place_of, Index first, Index count, Place place) {
  Index inside = first, reach = 1;
  while (reach < count - inside && place_of(inside + reach) == place) {
    inside += reach;
    reach += reach < count / 2 ? reach : 0;
  }
  for (; reach > 0; reach >>= 1)
    if (reach < count - inside && place_of(inside + reach) == place) inside += reach;
  return inside + 1;
}
