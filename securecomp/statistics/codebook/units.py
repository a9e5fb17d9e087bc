"""Units that are taken for each other: what a median that is out of place looks like.

Factors are exact by definition (NIST SP 811, appendix B), those of laboratory values by molar mass.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Other:
    """Another unit than the agreed one.

    Attributes:
        name: What values may be in.
        factor: How many agreed units it is.
        offset: What is added before, as for temperatures.
    """

    name: str
    factor: float
    offset: float = 0.0

    def convert(self, value: float) -> float:
        """Return a value in the agreed unit."""
        return (value + self.offset) * self.factor

    def words(self) -> str:
        """Return how to convert."""
        shift = f"{'add' if self.offset > 0 else 'subtract'} {abs(self.offset):g}, then "
        return f"{self.name} ({shift if self.offset else ''}times {self.factor:.6g})"


_POUND, _INCH, _FOOT = 0.45359237, 2.54, 30.48
_KELVIN = Other("kelvin", 1, -273.15)
_OTHERS: dict[str, tuple[Other, ...]] = {
    "kg": (Other("pounds", _POUND), Other("grams", 1e-3), Other("ounces", _POUND / 16)),
    "g": (Other("kilograms", 1e3), Other("ounces", _POUND * 1e3 / 16), Other("mg", 1e-3)),
    "lb": (Other("kilograms", 1 / _POUND),),
    "m": (Other("centimetres", 1e-2), Other("inches", _INCH / 100), Other("feet", _FOOT / 100)),
    "cm": (Other("metres", 100), Other("inches", _INCH), Other("millimetres", 0.1),
           Other("feet", _FOOT)),
    "mm": (Other("centimetres", 10), Other("metres", 1e3), Other("inches", _INCH * 10)),
    "in": (Other("centimetres", 1 / _INCH), Other("metres", 100 / _INCH)),
    "c": (Other("Fahrenheit", 5 / 9, -32), _KELVIN),
    "f": (Other("Celsius", 1.8, 32 / 1.8), Other("kelvin", 1.8, 32 / 1.8 - 273.15)),
    "k": (Other("Celsius", 1, 273.15), Other("Fahrenheit", 5 / 9, 459.67)),
    "years": (Other("months", 1 / 12), Other("days", 1 / 365.25), Other("weeks", 7 / 365.25)),
    "months": (Other("years", 12), Other("days", 12 / 365.25)),
    "weeks": (Other("days", 1 / 7), Other("months", 365.25 / 84)),
    "days": (Other("hours", 1 / 24), Other("weeks", 7), Other("years", 365.25),
             Other("minutes", 1 / 1440), Other("seconds", 1 / 86400)),
    "hours": (Other("minutes", 1 / 60), Other("days", 24), Other("seconds", 1 / 3600)),
    "minutes": (Other("seconds", 1 / 60), Other("hours", 60)),
    "mmhg": (Other("kPa", 7.500617), Other("cmHg", 10)),
    "kpa": (Other("mmHg", 0.1333224),),
    "%": (Other("fractions", 100),),
    "fraction": (Other("per cent", 0.01),),
    "mmol/l": (Other("mg/dL of glucose", 1 / 18.0156), Other("mg/dL of cholesterol", 1 / 38.665),
               Other("mg/dL of triglycerides", 1 / 88.57)),
    "mg/dl": (Other("mmol/L of glucose", 18.0156), Other("mmol/L of cholesterol", 38.665),
              Other("umol/L of creatinine", 1 / 88.42), Other("mmol/L of triglycerides", 88.57),
              Other("umol/L of bilirubin", 1 / 17.104)),
    "umol/l": (Other("mg/dL of creatinine", 88.42), Other("mg/dL of bilirubin", 17.104)),
    "g/dl": (Other("g/L", 0.1), Other("mmol/L of haemoglobin", 1.6114)),
    "g/l": (Other("g/dL", 10),),
}  # fmt: skip
_SAME = {
    "kilogram": "kg", "kilograms": "kg", "gram": "g", "grams": "g", "lbs": "lb", "pounds": "lb",
    "metre": "m", "meter": "m", "metres": "m", "meters": "m", "centimetres": "cm",
    "centimeters": "cm", "millimetres": "mm", "millimeters": "mm", "inches": "in",
    "celsius": "c", "°c": "c", "degc": "c", "deg c": "c", "fahrenheit": "f", "°f": "f",
    "degf": "f", "kelvin": "k", "year": "years", "y": "years", "yr": "years", "month": "months",
    "week": "weeks", "day": "days", "d": "days", "hour": "hours", "h": "hours",
    "minute": "minutes", "min": "minutes", "percent": "%", "per cent": "%",
    "fractions": "fraction", "proportion": "fraction", "µmol/l": "umol/l", "μmol/l": "umol/l",
}  # fmt: skip
_TENS = tuple(
    Other(f"the agreed unit by a power of ten: {words}", factor)
    for words, factor in (
        ("tenfold", 0.1),
        ("a tenth", 10.0),
        ("hundredfold", 0.01),
        ("a hundredth", 100.0),
        ("thousandfold", 1e-3),
        ("a thousandth", 1e3),
    )
)


def looks_like(median: float, unit: str, typical: tuple[float, float]) -> str:
    """Return what unit values may be in, and how to convert them; "" if none would fit.

    Args:
        median: Of one site's values.
        unit: The agreed one.
        typical: Where the median should be, in that.
    """
    low, high = typical

    def fits(other: Other) -> bool:
        return low <= other.convert(median) <= high

    if low <= median <= high:
        return ""
    written = unit.strip().lower()
    others = _OTHERS.get(_SAME.get(written, written), ())
    return next((other.words() for other in (*others, *_TENS) if fits(other)), "")
